"""How a group's leader divides partitions among members."""
