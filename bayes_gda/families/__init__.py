"""The models: everything that only one of them knows."""
