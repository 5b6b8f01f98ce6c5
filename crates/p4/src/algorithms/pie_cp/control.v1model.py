

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
