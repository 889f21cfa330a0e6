import { Button, Stack } from "@mantine/core";
import { useState } from "react";

import { useApi } from "../../session.tsx";
import { SecretField } from "../../ui/copy.tsx";
import { ErrorNotice } from "../../ui/states.tsx";

/** The signing secret: at hand where it was just made, else fetched on request. Each look is audited. */
export function Secret({ id, fresh }: { readonly id: string; readonly fresh?: string }) {
  const api = useApi();
  const [secret, setSecret] = useState(fresh);
  const [error, setError] = useState<unknown>();
  const fetchIt = async () => {
    try {
      const answer = await api.call("POST", "/partner/webhooks/:id/secret", { params: { id } });
      setSecret(answer.secret);
      setError(undefined);
    } catch (caught) {
      setError(caught);
    }
  };
  if (secret !== undefined)
    return (
      <div className="takes-line">
        <SecretField label="Secret" value={secret} />
      </div>
    );
  return (
    <Stack gap="xs" align="flex-start">
      <Button variant="default" onClick={() => void fetchIt()}>
        Get the secret
      </Button>
      {error !== undefined && <ErrorNotice error={error} />}
    </Stack>
  );
}
