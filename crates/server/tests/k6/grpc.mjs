// Stands in for k6/net/grpc: each call is a line of JSON on standard output, its answer a line on standard input.
import { existsSync, readSync, writeSync } from "node:fs";
import { join } from "node:path";

const NEWLINE = 10;

function read() {
  const bytes = [];
  const one = Buffer.alloc(1);
  while (readSync(0, one, 0, 1, null) === 1 && one[0] !== NEWLINE) bytes.push(one[0]);
  return JSON.parse(Buffer.from(bytes).toString());
}

class Client {
  load(folders, file) {
    // As k6 does, from where the script is.
    const found = folders.some((folder) => existsSync(join(process.env.SCRIPTS, folder, file)));
    if (!found) throw new Error(`${file} is not in ${folders}`);
  }

  connect(address, { plaintext }) {
    if (!address || !plaintext) throw new Error("an address and plain text");
    this.connected = true;
  }

  invoke(method, message, { metadata }) {
    if (!this.connected) throw new Error("not connected");
    writeSync(1, `${JSON.stringify({ method, message, metadata })}\n`);
    return read();
  }

  close() {
    this.connected = false;
  }
}

export default { Client, StatusOK: 0, StatusResourceExhausted: 8, StatusFailedPrecondition: 9 };
