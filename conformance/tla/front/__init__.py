"""From the text of a module and its configuration to the syntax tree."""
