"""A client in the loop: a real client process, and a coordinator that the specification plays."""
