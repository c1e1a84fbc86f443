"""A recorded cluster (docs/cluster.md): its lines as events of a specification, and the mapping."""
