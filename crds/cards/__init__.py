"""What device plugins, scheduler and node agent tell each other about cards: names, registers, records."""
