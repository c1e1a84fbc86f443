"""Where systems are known to depart from a specification, and what of that is set aside."""
