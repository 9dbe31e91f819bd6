// Reads a Pawl journal file, checks all that holds it together, and prints its turns:
//   node read_journal.mjs FILE
// It is written from docs/journal.md alone, with nothing but Node.js, to show that the page is
// enough. Even the fields of the records are taken from the tables there. Errors carry the codes
// of the page; a broken file ends with exit code 1.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

const PAGE = new URL("../../docs/journal.md", import.meta.url);
const DOCUMENT_BYTES_MAX = 2 ** 30; // of a document in the file: a frame holds many turns
const VALUE_BYTES_MAX = 2 ** 24; // of one payload, turn, disposition or definition
const DEPTH_MAX = 64; // arrays and maps inside each other
const SIMPLE = { 20: false, 21: true, 22: null };

class Broken extends Error {} // a file that is not what was written
class Unfit extends Error {} // bytes that are no canonical value, or a value that is no such record
class Ended extends Unfit {} // bytes that end too early

function main(path) {
  try {
    const journal = readJournal(readFileSync(path));
    for (const { cell, turns } of journal.instances.values())
      for (const [, number, , , [input], events] of turns) {
        const tags = events.map(([tag]) => ` ${tag}`).join("");
        console.log(`${cell.join("/")} turn ${number} ${input}:${tags}`);
      }
    console.log(`head ${journal.head.toString("hex")} at ${journal.last}`);
  } catch (error) {
    if (!(error instanceof Broken)) throw error;
    console.error(error.message);
    process.exitCode = 1;
  }
}

// The file: documents, their frames, the entries of a frame, and at last what is in the turns.

function readJournal(file) {
  const journal = { definitions: [], instances: new Map(), head: Buffer.of(), last: 0n };
  for (const [at, bytes] of documents(file)) {
    const read = () => readRecord("document", bytes, DOCUMENT_BYTES_MAX);
    const [tag, ...fields] = attempt("journal.unreadable", at, read);
    if (tag === "definition") journal.definitions.push(fields[0]);
    else if (tag === "part") admitPart(journal, fields);
    else admitFrame(journal, fields);
  }
  for (const data of journal.definitions) attempt("journal.definition", 0, () => decode(data));
  const hash = (data) => hashOf("pawl.definition.1", data).toString("hex");
  const known = new Set(journal.definitions.map(hash));
  for (const instance of journal.instances.values()) readTurns(instance, known);
  return journal;
}

function* documents(file) {
  const source = new Source(file);
  while (source.at < file.length) {
    const at = source.at;
    if (file[at] >> 5 !== 2) fail("journal.unreadable", at, "no byte string");
    yield [at, attempt("journal.unreadable", at, () => source.value(), "journal.truncated")];
  }
}

function admitFrame(journal, [shard, first, last, prev, root, sealed, entries]) {
  journal.shard ??= shard;
  if (!journal.head.length) journal.head = hashOf("pawl.shard.1", shard);
  if (first !== journal.last + 1n) fail("journal.gap", first, `${journal.last + 1n} is missing`);
  if (shard !== journal.shard || !prev.equals(journal.head))
    fail("journal.chain", first, "the frame is chained to another one");
  const leaves = entries.map((entry, i) =>
    attempt("journal.entry", first + BigInt(i), () => admitEntry(journal, entry)),
  );
  const whole = last === first + BigInt(leaves.length) - 1n && root.equals(merkleRoot(leaves));
  if (!whole || !sealed.equals(hashOf("pawl.frame.1", prev, first, last, root)))
    fail("journal.hash", first, "the content does not give the frame's hash");
  [journal.last, journal.head] = [last, sealed];
}

function admitPart(journal, [shard, first, last, prev, root, sealed, entries]) {
  const follows = journal.head.length > 0;
  if (follows && (shard !== journal.shard || first <= journal.last))
    fail("journal.gap", first, "parts stand in order, and are of one shard");
  if (follows && first === journal.last + 1n && !prev.equals(journal.head))
    fail("journal.chain", first, "the frame is chained to another one");
  let before = -1n;
  for (const [index, entry, path = []] of entries) {
    const leaf = attempt("journal.entry", first + index, () => admitEntry(journal, entry));
    const shown = rootOver(leaf, index, last - first + 1n, [...path]);
    if (index <= before || !shown?.equals(root))
      fail("journal.proof", first + index, "the entry is not proven to be in its frame");
    before = index;
  }
  if (!entries.length || !sealed.equals(hashOf("pawl.frame.1", prev, first, last, root)))
    fail("journal.hash", first, "the content does not give the frame's hash");
  Object.assign(journal, { shard, last, head: sealed });
}

function rootOver(leaf, index, size, path) {
  if (index < 0n || index >= size) return null;
  let node = sha256(Buffer.of(0), leaf);
  for (; size > 1n; index /= 2n, size = (size + 1n) / 2n) {
    if ((index ^ 1n) >= size) continue;
    const sibling = path.shift();
    if (!sibling) return null;
    const pair = index % 2n ? [sibling, node] : [node, sibling];
    node = sha256(Buffer.of(1), ...pair);
  }
  return path.length ? null : node;
}

function admitEntry({ instances }, [tag, cell, data, payloads = []]) {
  for (const [address, bytes] of payloads) checkPayload(address, bytes, cell[0]);
  const name = JSON.stringify(cell);
  if (tag === "disposed") {
    const [, owner] = readRecord("disposition", data);
    if (JSON.stringify(owner) !== name) throw new Unfit("a disposition is of another cell");
    return hashOf("pawl.disposition.1", data);
  }
  if (!instances.has(name))
    instances.set(name, { cell, turns: [], head: hashOf("pawl.instance.1", ...cell) });
  const instance = instances.get(name);
  instance.turns.push(data);
  return (instance.head = hashOf("pawl.turn.1", instance.head, data));
}

function checkPayload(address, bytes, tenant) {
  if (!is.payload(address) || address[0] !== 0) throw new Unfit("payload.scheme");
  decode(bytes);
  const named = address.subarray(1).equals(hashOf("pawl.payload.1", tenant, bytes));
  if (!named) throw new Unfit(`payload.corrupt: these bytes are not ${address.toString("hex")}`);
}

function readTurns(instance, known) {
  instance.turns = instance.turns.map((data, i) =>
    attempt("journal.turn", i + 1, () => readRecord("turn", data)),
  );
  const [tag, definition] = instance.turns[0][4];
  const started = tag === "start" && known.has(definition.toString("hex"));
  if (!started && !instance.cell[1].startsWith("$"))
    fail("journal.definition", 1, `no definition for ${instance.cell.join("/")}`);
  for (const [i, [, number]] of instance.turns.entries())
    if (number !== BigInt(i + 1)) fail("number", i + 1, `found turn ${number}`);
}

function attempt(code, at, read, codeIfEnded = code) {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof Unfit)) throw error;
    return fail(error instanceof Ended ? codeIfEnded : code, at, error.message);
  }
}

function fail(code, at, why) {
  throw new Broken(`${code} at ${at}: ${why}`);
}

// Records: an array of a tag and fields, or of fields alone, as the tables of the page say.

const is = {
  int: (value) => typeof value === "bigint",
  text: (value) => typeof value === "string",
  bool: (value) => typeof value === "boolean",
  array: (value) => Array.isArray(value),
  bytes: (value) => Buffer.isBuffer(value),
  payload: (value) => is.bytes(value) && value.length === 33,
};
Object.assign(is, { time: is.int, digest: is.bytes, key: is.bytes });

function tables(page) {
  const records = new Map(); // kind -> tag -> fields; a record without a tag has the tag "none"
  for (const [, heading, body] of page.matchAll(/^\| (\w+) \|.* means \|\n.*\n((?:\|.*\n)+)/gm))
    for (const line of body.trim().split("\n")) {
      const row = line.split(" | ").map((cell) => cell.replace(/^\| /, ""));
      const [kind, tag, fields] = heading === "record" ? row : [heading, ...row];
      const typed = fields.matchAll(/`\w+` (.+?)(?: (=) [^;]+)?(?:; |$)/g);
      const shape = [...typed].map(([, type, mark]) => ({ type, optional: mark === "=" }));
      if (!records.has(kind)) records.set(kind, new Map());
      records.get(kind).set(tag.replaceAll("`", ""), shape);
    }
  return records;
}

function readRecord(kind, bytes, bytesMax) {
  const value = decode(bytes, bytesMax);
  expect(kind, value);
  if (kind === "turn" && value[0] !== 1n) throw new Unfit(`turn format ${value[0]}; 1 is known`);
  return value;
}

function expect(type, value) {
  if (type.endsWith("?")) return value === null || expect(type.slice(0, -1), value);
  if (is.array(value) && type.startsWith("["))
    return value.every((each) => expect(type.slice(1, -1), each));
  if (is.array(value) && RECORDS.has(type)) return expectRecord(type, value);
  const literal = is.text(value) ? `\`${value}\`` : is.int(value) && `${value}`;
  if (type in is ? is[type](value) : type.split(" / ").includes(literal)) return true;
  throw new Unfit(`expected ${type}`);
}

function expectRecord(kind, items) {
  const shapes = RECORDS.get(kind);
  const [tag, fields] = shapes.has("none") ? ["none", items] : [items[0], items.slice(1)];
  const shape = shapes.get(tag);
  if (!shape) throw new Unfit(`no ${kind} is tagged ${tag}`);
  if (fields.length > shape.length) throw new Unfit(`this ${kind} is longer than any known here`);
  if (shape.slice(fields.length).some((field) => !field.optional))
    throw new Unfit(`this ${kind} lacks a field that has no default`);
  return fields.every((field, i) => expect(shape[i].type, field));
}

// Hashes.

const hashOf = (...parts) => sha256(head(4, parts.length), ...parts.flatMap(encode));

const sha256 = (...chunks) => createHash("sha256").update(Buffer.concat(chunks)).digest();

function merkleRoot(leaves) {
  if (leaves.length < 2) return sha256(...leaves.flatMap((leaf) => [Buffer.of(0), leaf]));
  let split = 1;
  while (split * 2 < leaves.length) split *= 2;
  return sha256(Buffer.of(1), merkleRoot(leaves.slice(0, split)), merkleRoot(leaves.slice(split)));
}

// Canonical CBOR. Integers are read as BigInt, floats as Number, maps as Map.

const HALVES = Array.from({ length: 2 ** 16 }, (_, bits) => halfOf(bits));
const IN_HALF = new Set(HALVES);
const FLOATS = {
  25: { read: (raw) => HALVES[raw.readUInt16BE()], fitsShorter: () => false },
  26: { read: (raw) => raw.readFloatBE(), fitsShorter: (value) => IN_HALF.has(value) },
  27: { read: (raw) => raw.readDoubleBE(), fitsShorter: (value) => Math.fround(value) === value },
};

function halfOf(bits) {
  const [sign, exponent, fraction] = [bits >> 15 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
  if (exponent === 31) return NaN;
  return sign * (exponent ? (1024 + fraction) * 2 ** (exponent - 25) : fraction * 2 ** -24);
}

function encode(part) {
  if (is.int(part)) return part < 0n ? head(1, -1n - part) : head(0, part);
  const bytes = Buffer.from(part);
  return [head(is.text(part) ? 3 : 2, bytes.length), bytes];
}

function head(major, argument) {
  const width = [24, 2 ** 8, 2 ** 16, 2 ** 32].filter((limit) => argument >= limit).length;
  if (width === 0) return Buffer.of((major << 5) | Number(argument));
  const tail = Buffer.from(argument.toString(16).padStart(2 ** width, "0"), "hex");
  return Buffer.concat([Buffer.of((major << 5) | (23 + width)), tail]);
}

function decode(bytes, bytesMax = VALUE_BYTES_MAX) {
  if (bytes.length > bytesMax) throw new Unfit(`${bytes.length} bytes; ${bytesMax} are read`);
  const source = new Source(bytes);
  const value = source.value();
  if (source.at < bytes.length) throw new Unfit("bytes behind the value");
  return value;
}

class Source {
  at = 0;
  constructor(bytes) {
    this.bytes = bytes;
  }

  take(size) {
    if (size > this.bytes.length - this.at) throw new Ended("the bytes end too early");
    return this.bytes.subarray(this.at, (this.at += Number(size)));
  }

  value(depth = 0) {
    const [first] = this.take(1);
    const [major, info] = [first >> 5, first & 31];
    if (major === 7) return info in SIMPLE ? SIMPLE[info] : this.float(info);
    const argument = this.argument(major, info);
    if (major === 0) return argument;
    if (major === 1 && argument < 2 ** 63) return -1n - argument;
    if (major === 2) return this.take(argument);
    if (major === 3) return textOf(this.take(argument));
    if (major === 4 && depth < DEPTH_MAX) return this.array(argument, depth + 1);
    if (major === 5 && depth < DEPTH_MAX) return this.map(argument, depth + 1);
    throw new Unfit("a tag, an integer below -2^63, or arrays and maps too deep");
  }

  argument(major, info) {
    if (info > 27) throw new Unfit("an indefinite length");
    const tail = info < 24 ? Buffer.of(info) : this.take(2 ** (info - 24));
    const argument = BigInt(`0x${tail.toString("hex")}`);
    if (info > 23 && head(major, argument).length <= tail.length)
      throw new Unfit("a head is longer than needed");
    return argument;
  }

  array(size, depth) {
    const items = [];
    while (items.length < size) items.push(this.value(depth));
    return items;
  }

  map(size, depth) {
    const map = new Map();
    for (let [start, before] = [this.at, Buffer.of()]; map.size < size; start = this.at) {
      const key = this.value(depth);
      const written = this.bytes.subarray(start, this.at);
      if (!is.text(key)) throw new Unfit("a key is not text");
      if (Buffer.compare(before, written) >= 0) throw new Unfit("keys are out of order");
      map.set(key, this.value(depth));
      before = written;
    }
    return map;
  }

  float(info) {
    if (!(info in FLOATS)) throw new Unfit("a simple value that is not known");
    const raw = this.take(2 ** (info - 24));
    const value = FLOATS[info].read(raw);
    if (!Number.isFinite(value)) throw new Unfit("a float that is not finite");
    if (FLOATS[info].fitsShorter(value)) throw new Unfit("a float is longer than needed");
    return value;
  }
}

function textOf(bytes) {
  const text = bytes.toString("utf8"); // what is not UTF-8 becomes U+FFFD, and other bytes
  if (!Buffer.from(text).equals(bytes)) throw new Unfit("text is not UTF-8");
  return text;
}

const RECORDS = tables(readFileSync(PAGE, "utf8"));
main(process.argv[2]);
