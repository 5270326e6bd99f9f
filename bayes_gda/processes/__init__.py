"""Processes and what belongs to the whole process: chains side by side, shared settings, signals."""
