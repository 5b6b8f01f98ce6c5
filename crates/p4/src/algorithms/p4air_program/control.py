IDLE = @IDLE@  # seconds
QUEUES = @QUEUES@  # of each port
QUEUE_BITS = @QUEUE_BITS@
FIRST_LONG_LIVED = @FIRST_LONG_LIVED@  # the queues before it are those of short-lived flows
FLOW_MARK = @FLOW_MARK@
COUNTS = [@COUNTS@]  # flows of each group
BOUNDS = [@BOUNDS@]  # the first queue of each group but the first
ROOMS = [@ROOMS@]
# What the words begin with. BMv2 stores the XOR of each word with it.
INITIAL = {@INITIAL@}


def remove(registers, port, entry):
    """Removes the flow of an entry, whose packets leave by a port: from the counters of its group, and from the entry. Returns whether it was long-lived."""

    def change(name, index, value):
        registers.write(name, index, value)
        return value

    group, queue = registers.read("flow_group", entry), registers.read("flow_queue", entry)
    registers.write("flow_group", entry, 0)
    registers.write("flow_queue", entry, 0)
    if group == 0:
        return False
    place = port << QUEUE_BITS | queue & ((1 << QUEUE_BITS) - 1)
    if registers.read("newest_flow", place) == FLOW_MARK | entry:
        registers.write("newest_flow", place, 0)
    left = [change(name, port, max(registers.read(name, port) - 1, 0)) for name in [COUNTS[group - 1], "long_lived_flows"]]
    firsts = [FIRST_LONG_LIVED, *(registers.read(name, port) for name in BOUNDS), QUEUES]
    # With fewer flows, each queue takes one less at each multiple of the queues.
    is_less = left[1] % QUEUES == QUEUES - 1
    for number, name in enumerate(ROOMS):
        size = firsts[number + 1] - firsts[number] & 0xff
        gained = (number + 1 == group) - (size if is_less else 0)
        registers.write(name, port, registers.read(name, port) + gained & 0xffffffff)
    return True


class Ended:
    """Finds flows that have ended: those of which no packet with data changed a register for a time."""

    def __init__(self, idle):
        self.idle = idle
        self.seen = {}

    def round(self, now, groups, sent, ends):
        """The entries of long-lived flows that have ended, by the words of three registers at a time in seconds. Each packet with data counts in `sent`, or ends a round
        trip, whose end is in `ends`."""
        ended = []
        for entry, group in enumerate(groups):
            state = (group, sent[entry], ends[entry])
            before, since = self.seen.get(entry, (None, now))
            if group == 0:
                self.seen.pop(entry, None)
            elif state != before:
                self.seen[entry] = (state, now)
            elif now - since >= self.idle:
                ended.append(entry)
                del self.seen[entry]
        return ended


class Registers:
    """The words of BMv2's registers."""

    def __init__(self, switch):
        self.switch = switch

    def read(self, name, index):
        return self.switch.read(f"MainIngress.{name}", index) ^ INITIAL.get(name, 0)

    def write(self, name, index, value):
        self.switch.write(f"MainIngress.{name}", index, value ^ INITIAL.get(name, 0))

    def all(self, name):
        self.switch.send(f"register_read MainIngress.{name}")
        for line in self.switch.cli.stdout:
            _, is_there, words = line.partition(f"MainIngress.{name}= ")
            if is_there:
                return [int(word) ^ INITIAL.get(name, 0) for word in words.split(",")]
            if "Error" in line or "Invalid" in line:
                sys.exit(f"the register {name} cannot be read: {line.strip()}")
        sys.exit(ENDED)


def sweep(registers, ended, port, now):
    """Removes the flows that have ended. Returns their entries."""
    # An entry does not say by which port its flow leaves.
    others = [number for number, count in enumerate(registers.all("long_lived_flows")) if count and number != port]
    if others:
        sys.exit(f"port {others[0]} has long-lived flows, too, and the switch does not store the port of a flow: have one port with managed flows, and name it")
    entries = ended.round(now, *(registers.all(name) for name in ["flow_group", "sent", "round_end"]))
    for entry in entries:
        remove(registers, port, entry)
    return entries


def main():
    parser = argparse.ArgumentParser(description="P4air's control plane for BMv2: removes flows that have ended.")
    parser.add_argument("port", type=port_number, metavar="PORT", help="the port by which all managed flows leave, 0 to 127")
    parser.add_argument("--idle", type=float, default=IDLE, metavar="SECONDS", help="how long a flow that has ended had no data")
    parser.add_argument("--every", type=float, metavar="SECONDS", help="how often to look: a quarter of --idle by default")
    parser.add_argument("--cli", default="simple_switch_CLI", help="BMv2's command line")
    parser.add_argument("--thrift-port", type=int, default=9090)
    parser.add_argument("--rounds", type=int, help="ends after this many rounds")
    arguments = parser.parse_args()
    # For each register that is read as a whole, the command line says so there.
    switch = Switch(arguments.cli, arguments.thrift_port, stderr=subprocess.DEVNULL)
    registers, ended = Registers(switch), Ended(arguments.idle)
    pause = arguments.idle / 4 if arguments.every is None else arguments.every
    rounds = 0
    while arguments.rounds is None or rounds < arguments.rounds:
        began = time.monotonic()
        entries = sweep(registers, ended, arguments.port, began)
        if entries:
            print(f"removed {len(entries)} flows", flush=True)
        rounds += 1
        time.sleep(max(0.0, began + pause - time.monotonic()))
    switch.cli.stdin.close()
    switch.cli.wait()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        # Ctrl-C ends it.
        pass
