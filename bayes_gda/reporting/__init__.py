"""From judgement to what is handed on: plots, and the report that holds them."""
