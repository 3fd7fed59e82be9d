// Paired measurements: all variants in one process, alternating, medians of at least five rounds.
// The first variant is the base; ratios are medians of the per-round ratios, because this kind of machine is noisy.
import { readFileSync } from "node:fs";

/** CPU time of the main thread in µs; null where the system doesn't tell. */
function mainThreadCpuUs() {
  try {
    return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(" ")[0]) / 1_000;
  } catch {
    return null;
  }
}

export const median = (values) => {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
};

async function runOps(op, count, concurrency) {
  let left = count;
  const worker = async () => {
    while (left > 0) {
      left -= 1;
      await op();
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
}

async function measureOnce(variant, count, concurrency) {
  const cpu = process.cpuUsage();
  const main = mainThreadCpuUs();
  const start = performance.now();
  await runOps(variant.op, count, concurrency);
  await variant.settle?.();
  const wallMs = performance.now() - start;
  const used = process.cpuUsage(cpu);
  const mainNow = mainThreadCpuUs();
  return {
    cpuUs: (used.user + used.system) / count,
    mainUs: main === null ? null : (mainNow - main) / count,
    opsPerS: (count / wallMs) * 1_000,
  };
}

/**
 * variants: [{ name, op, settle? }], base first. Returns per variant { name, cpuUs, mainUs, opsPerS, cpuRatio, mainRatio, opsRatio }.
 */
export async function compare(variants, { count, concurrency, rounds = 7, warmup = Math.min(count, 2_000) }) {
  const samples = variants.map(() => []);
  for (const variant of variants) {
    await runOps(variant.op, warmup, concurrency);
    await variant.settle?.();
  }
  for (let round = 0; round < rounds; round += 1) {
    for (const [index, variant] of variants.entries()) {
      samples[index].push(await measureOnce(variant, count, concurrency));
    }
  }
  const ratio = (index, key) =>
    samples[0][0][key] === null
      ? null
      : median(samples[index].map((sample, round) => sample[key] / samples[0][round][key]));
  return variants.map((variant, index) => ({
    name: variant.name,
    cpuUs: median(samples[index].map((sample) => sample.cpuUs)),
    mainUs: samples[index][0].mainUs === null ? null : median(samples[index].map((sample) => sample.mainUs)),
    opsPerS: median(samples[index].map((sample) => sample.opsPerS)),
    cpuRatio: ratio(index, "cpuUs"),
    mainRatio: ratio(index, "mainUs"),
    opsRatio: ratio(index, "opsPerS"),
  }));
}
