"""Ways to a posterior that know no model, and the ladder that chooses among them."""
