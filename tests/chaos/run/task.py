"""Runs one task of a job in the surroundings that a fault needs, and becomes its program:
task.py STATE PROGRAM [ARGUMENT...]. STATE is a JSON file, which says for each task

  late: [TASK, SECONDS]: the first process of this task starts so much later
  hosts: {TASK: [PID, ADDRESS]}: the task runs in the network of this process, and listens on this address
"""

import json
import os
import sys
import time


def main():
    with open(sys.argv[1]) as file:
        state = json.load(file)
    command = sys.argv[2:]
    config = json.loads(os.environ["TF_CONFIG"])
    me = f"{config['task']['type']}/{config['task']['index']}"
    late = state.get("late")
    if late and late[0] == me:
        try:
            os.close(os.open(sys.argv[1] + ".started", os.O_CREAT | os.O_EXCL))
            time.sleep(late[1])
        except FileExistsError:
            pass
    hosts = state.get("hosts")
    if hosts:
        for job, addresses in config["cluster"].items():
            for index, address in enumerate(addresses):
                port = address.rsplit(":", 1)[1]
                addresses[index] = f"{hosts[f'{job}/{index}'][1]}:{port}"
        os.environ["TF_CONFIG"] = json.dumps(config, separators=(",", ":"))
        os.environ["COHORT_ALLOW_INSECURE"] = "1"
        command = ["nsenter", "--net", "-t", str(hosts[me][0]), *command]
    os.execvp(command[0], command)


main()
