"""What a report says: computed here, from the scorecard."""
