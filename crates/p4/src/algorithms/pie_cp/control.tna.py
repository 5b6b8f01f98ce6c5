
# The ports that it controls, by their numbers within the pipe.
PORTS = [0]


def main():
    pipe = bfrt.pie_cp.pipe
    ports = {number: Port() for number in PORTS}
    while True:
        began = time.monotonic()
        for number, port in ports.items():
            # A register has a value for each pipe.
            entry = pipe.MainEgress.last_delay.get(REGISTER_INDEX=number, from_hw=True, print_ents=False)
            delay = max(entry.data[b"MainEgress.last_delay.f1"])
            pipe.MainIngress.drop_probability.mod(REGISTER_INDEX=number, f1=port.update(delay))
        time.sleep(max(0.0, began + PERIOD - time.monotonic()))


main()
