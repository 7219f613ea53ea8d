#!/usr/bin/env python3
"""Measures the rate of a link: the payload of one plain TCP connection, with bytes in both directions at once.

Run it on two hosts. Each prints one JSON object with the bytes per second that it received.
"""

import argparse
import socket
import sys
import threading
import time

import measure

CHUNK = 1 << 18


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--listen", metavar="ADDRESS", help="listen at this address for the other host")
    p.add_argument("--connect", metavar="ADDRESS", help="the address of the host that listens")
    p.add_argument("--port", type=int, default=2223)
    p.add_argument("--seconds", type=float, default=2)
    args = p.parse_args()
    if (args.listen is None) == (args.connect is None):
        p.error("give one of --listen and --connect")
    return args


def meet(args):
    if args.listen:
        with socket.create_server((args.listen, args.port)) as server:
            server.settimeout(20)
            connection = server.accept()[0]
    else:
        end = time.monotonic() + 20
        while True:
            try:
                connection = socket.create_connection((args.connect, args.port), timeout=20)
                break
            except ConnectionRefusedError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)
    connection.settimeout(20)
    return connection


def send(connection, seconds):
    chunk, end = bytes(CHUNK), time.monotonic() + seconds
    while time.monotonic() < end:
        connection.sendall(chunk)
    connection.shutdown(socket.SHUT_WR)


def receive(connection, warmup):
    """Returns the bytes per second, from `warmup` seconds after the first byte until the last byte."""
    buffer, counted = bytearray(CHUNK), 0
    connection.recv_into(buffer)
    begin = time.monotonic() + warmup
    first = last = None
    while size := connection.recv_into(buffer):
        last = time.monotonic()
        if first is not None:
            counted += size
        elif last >= begin:
            first = last
    if first is None or last == first:
        sys.exit(f"the connection ended within {warmup} s")
    return counted / (last - first)


def main():
    args = parse()
    with meet(args) as connection:
        sender = threading.Thread(target=send, args=(connection, args.seconds), daemon=True)
        sender.start()
        rate = receive(connection, args.seconds / 4)
        sender.join()
    measure.emit(peer="TCP", bytes_per_s=round(rate))


if __name__ == "__main__":
    main()
