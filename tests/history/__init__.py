"""What happened in a run, and the proof that every promise was kept."""
