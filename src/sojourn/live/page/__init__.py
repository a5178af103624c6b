"""How a broker is doing: reports, the page for people, metrics for machines."""
