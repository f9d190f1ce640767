"""Where partitions are kept: the verbs, and the engines that have them."""
