"""Real processes that die at every point of what they do, and disks and clocks that fail them."""
