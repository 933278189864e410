// secretlint in a process of its own; orders and answers as in peer_worker.py. Run from the folder it is installed in.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const wanted = createRequire(join(process.cwd(), "package.json"));
const load = (name) => import(pathToFileURL(wanted.resolve(name)).href);
const { lintSource } = await load("@secretlint/core");
const { creator } = await load("@secretlint/secretlint-rule-preset-recommend");
const options = { config: { rules: [{ id: "@secretlint/secretlint-rule-preset-recommend", rule: creator }] } };
const texts = JSON.parse(readFileSync(process.argv[3], "utf-8"));

process.stdout.write(JSON.stringify({ ready: true }) + "\n");
for await (const line of createInterface({ input: process.stdin })) {
  const [low, high] = line.split(" ").map(Number);
  const wall = process.hrtime.bigint();
  const cpu = process.cpuUsage();
  let found = 0;
  for (const content of texts.slice(low, high)) {
    const source = { filePath: "text.txt", content, ext: ".txt", contentType: "text" };
    found += (await lintSource({ source, options })).messages.length;
  }
  const used = process.cpuUsage(cpu);
  process.stdout.write(
    JSON.stringify({
      wall: Number(process.hrtime.bigint() - wall) / 1e9,
      cpu: (used.user + used.system) / 1e6,
      found,
      memory: process.resourceUsage().maxRSS / 1024,
    }) + "\n",
  );
}
