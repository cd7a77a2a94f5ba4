"""Who answers a batch of programs: boards now, the twin and recorded landscapes beside them."""
