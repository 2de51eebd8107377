"""Plans to figures, and figures to what people see."""
