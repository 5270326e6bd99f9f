"""Teaching: hypothesis spaces, the debate of generative and discriminative learners, and the textbook's page."""
