"""Share groups (KIP-932): kafka.server.share."""
