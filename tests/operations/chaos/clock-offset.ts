// A preload (`bun --preload`) that shifts the wall clock of a process by CLOCK_OFFSET_MS. The monotonic clock and
// timers stay correct, as on a machine with a wrong time.
const offsetMs = Number(process.env["CLOCK_OFFSET_MS"] ?? 0);
const RightDate = Date;

globalThis.Date = new Proxy(RightDate, {
  construct(target, given, newTarget: new (...args: unknown[]) => object) {
    const args: unknown[] = given.length === 0 ? [target.now() + offsetMs] : given;
    return Reflect.construct(target, args, newTarget === globalThis.Date ? target : newTarget);
  },
  get(target, key) {
    if (key === "now") return () => target.now() + offsetMs;
    return Reflect.get(target, key) as unknown;
  },
});
