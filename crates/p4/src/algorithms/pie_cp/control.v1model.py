
ENDED = "the switch's command line ended: is the switch running, and its Thrift port right?"


class Switch:
    """BMv2's registers, by way of its command line, which has Thrift."""

    def __init__(self, cli, thrift_port):
        command = [cli, "--thrift-port", str(thrift_port)]
        try:
            self.cli = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        except OSError as error:
            sys.exit(f"{cli} does not start: {error.strerror}; --cli names another one")

    def send(self, command):
        try:
            self.cli.stdin.write(command + "\n")
            self.cli.stdin.flush()
        except BrokenPipeError:
            sys.exit(ENDED)

    def read(self, register, index):
        self.send(f"register_read {register} {index}")
        for line in self.cli.stdout:
            found = re.search(re.escape(f"{register}[{index}]") + r"=\s*(\d+)", line)
            if found:
                return int(found.group(1))
            if "Error" in line or "Invalid" in line:
                sys.exit(f"{register}[{index}] cannot be read: {line.strip()}")
        sys.exit(ENDED)

    def write(self, register, index, value):
        self.send(f"register_write {register} {index} {value}")


def port_number(text):
    number = int(text)
    if not 0 <= number <= 127:
        raise ValueError
    return number


port_number.__name__ = "port from 0 to 127"


def main():
    parser = argparse.ArgumentParser(description="PIE_CP's control plane for BMv2.")
    parser.add_argument("ports", nargs="+", type=port_number, metavar="PORT", help="a port to control, 0 to 127")
    parser.add_argument("--cli", default="simple_switch_CLI", help="BMv2's command line")
    parser.add_argument("--thrift-port", type=int, default=9090)
    parser.add_argument("--rounds", type=int, help="ends after this many rounds")
    arguments = parser.parse_args()
    switch = Switch(arguments.cli, arguments.thrift_port)
    ports = {number: Port() for number in arguments.ports}
    rounds = 0
    while arguments.rounds is None or rounds < arguments.rounds:
        began = time.monotonic()
        for number, port in ports.items():
            delay = switch.read("MainEgress.last_delay", number)
            switch.write("MainIngress.drop_probability", number, port.update(delay))
        rounds += 1
        # The command line is slower than the period; then there is no pause.
        time.sleep(max(0.0, began + PERIOD - time.monotonic()))
    switch.cli.stdin.close()
    switch.cli.wait()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        # Ctrl-C ends it.
        pass
