/**
 * A minimal load balancer for the APIs: it polls readiness, distributes requests round-robin over ready upstreams,
 * and never retries.
 */
interface ReverseProxy {
  readonly root: string;
  /** The root URLs of the APIs. */
  readonly upstreams: Set<string>;
  stop(): void;
}

const LOOK_MS = 200;

export function startReverseProxy(): ReverseProxy {
  const upstreams = new Set<string>();
  let ready: string[] = [];
  let nth = 0;
  const look = async () => {
    const asked = [...upstreams].map(async (root) => {
      const answer = await fetch(`${root}/readyz`, {
        signal: AbortSignal.timeout(LOOK_MS * 5),
      }).catch(() => undefined);
      return answer?.ok === true ? [root] : [];
    });
    ready = (await Promise.all(asked)).flat();
  };
  const looking = setInterval(() => void look(), LOOK_MS);
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const root = ready[nth++ % ready.length];
      if (root === undefined) return new Response("Nobody is ready.", { status: 502 });
      const { pathname, search } = new URL(request.url);
      const body = request.method === "GET" ? null : await request.arrayBuffer();
      try {
        const answer = await fetch(`${root}${pathname}${search}`, {
          method: request.method,
          headers: request.headers,
          body,
          redirect: "manual",
        });
        // `fetch` has already decoded the body.
        const headers = new Headers(answer.headers);
        for (const name of ["connection", "content-encoding", "content-length"])
          headers.delete(name);
        return new Response(await answer.arrayBuffer(), { status: answer.status, headers });
      } catch (error) {
        return new Response(String(error), { status: 502 });
      }
    },
  });
  return {
    root: `http://127.0.0.1:${server.port}`,
    upstreams,
    stop() {
      clearInterval(looking);
      void server.stop(true);
    },
  };
}
