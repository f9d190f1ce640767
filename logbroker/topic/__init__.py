"""Topics, and what is known of those who write to them. Pure."""
