import { useState } from "react";

import { useApi } from "../../session.tsx";
import { problemOf } from "../../ui/explain.ts";

const PATH = "/account/api-token";

/** undefined: not asked for yet; null: there is none. Kept by this component alone, so that leaving the page forgets it. */
export function useDashboardToken() {
  const api = useApi();
  const [token, setToken] = useState<Token | null>();
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const attempt = async (work: () => Promise<void>) => {
    setBusy(true);
    setError(undefined);
    try {
      await work();
    } catch (caught) {
      setError(caught);
    } finally {
      setBusy(false);
    }
  };
  const view = async () => setToken(await viewToken(api));
  const generate = async () => {
    try {
      setToken(await api.call("POST", PATH, {}));
    } catch (caught) {
      if (problemOf(caught)?.code !== "token_exists") throw caught;
      // Another tab was quicker.
      await view();
    }
  };
  return {
    token,
    error,
    isBusy,
    open: () => void attempt(view),
    generate: () => void attempt(generate),
    regenerate: async () => setToken(await api.call("POST", `${PATH}/regenerate`, {})),
    remove: async () => {
      await api.call("DELETE", PATH, {});
      setToken(null);
    },
  };
}

async function viewToken(api: ReturnType<typeof useApi>) {
  try {
    return await api.call("GET", PATH, {});
  } catch (error) {
    if (problemOf(error)?.status === 404) return null;
    throw error;
  }
}

export type Token = NonNullable<Awaited<ReturnType<typeof viewToken>>>;
