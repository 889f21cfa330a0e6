import { useState, type FormEvent } from "react";

/** A form that sends something: whether it is under way, and what was wrong with it last. */
export function useSubmit(send: () => Promise<void>) {
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const attempt = async () => {
    setBusy(true);
    setError(undefined);
    try {
      await send();
    } catch (caught) {
      setError(caught);
    } finally {
      setBusy(false);
    }
  };
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    if (!isBusy) void attempt();
  };
  return { error, isBusy, onSubmit };
}
