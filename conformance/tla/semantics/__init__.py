"""What both back ends share: what names mean, what expressions depend on, when values are equal."""
