"""Makes histories: real clients send, poll, commit and abort by a seeded plan, and log it."""
