"""Of spec/GroupMembership.tla: members, messages, and what is seen of them."""
