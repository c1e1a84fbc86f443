"""Parts of adapters that impl's own share with those of foreign systems; none knows impl."""
