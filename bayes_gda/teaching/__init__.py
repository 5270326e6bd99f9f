"""Teaching: hypothesis spaces, the debate of generative and discriminative learners, and the textbook's page.

hypotheses     boolean rules, their counterexamples and version spaces; linear threshold units
debate         efficiency, changing loss, assumptions, missing values and noise, as experiments with seeds
learning       learning curves of LDA against logistic regression, and Efron's efficiency
truths         two classes whose p(y | x) is known
page           the page of figures and experiments: python -m bayes_gda.teaching FOLDER
"""
