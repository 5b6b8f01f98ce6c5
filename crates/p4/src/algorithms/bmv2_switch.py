
ENDED = "the switch's command line ended: is the switch running, and its Thrift port right?"


class Switch:
    """BMv2's registers, by way of its command line, which has Thrift."""

    def __init__(self, cli, thrift_port, stderr=None):
        command = [cli, "--thrift-port", str(thrift_port)]
        try:
            self.cli = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True, bufsize=1)
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
