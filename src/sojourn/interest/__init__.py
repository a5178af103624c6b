"""What clients say: events, subscriptions, advertisements, topics, policies, and how they relate."""
