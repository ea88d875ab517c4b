"""What a template is: the parsed page, labels, rules, and how they are made, applied and kept."""
