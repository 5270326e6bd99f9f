"""What the commands do: fit, predict, compare, write reports, and say what came of it."""
