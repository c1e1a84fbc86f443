"""Parts of adapters that impl's own and those of foreign systems have in common; none knows impl."""
