"""Requests that wait for an event or for time to pass: purgatories, timers and their threads."""
