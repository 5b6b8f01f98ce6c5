TARGET = @TARGET@  # seconds
ALPHA = @ALPHA@  # Hz
BETA = @BETA@  # Hz
PERIOD = @PERIOD@  # seconds
DECAYS_WITH_ONE = @DECAYS_WITH_ONE@  # whether one delay of zero is enough for the decay, or two in a row are needed

# Below a probability, its change is divided (RFC 8033, section 4.2).
DIVISORS = [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0)]


class Port:
    """What the control plane knows of a port."""

    def __init__(self):
        self.probability = 0.0
        self.old = 0

    def update(self, delay):
        """The word for the register drop_probability, after the delay of the last packet was read. Its unit of 1024 ns counts as a microsecond."""
        change = ALPHA * (delay * 1e-6 - TARGET) + BETA * ((delay - self.old) * 1e-6)
        divisor = next((divisor for below, divisor in DIVISORS if self.probability < below), 1.0)
        probability = self.probability + change / divisor
        if delay == 0 and (DECAYS_WITH_ONE or self.old == 0):
            probability *= 0.98
        self.probability = min(max(probability, 0.0), 1.0)
        self.old = delay
        return int(self.probability * 4294967295.0)
