import { Button, Stack } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";

import { SecretField } from "../../ui/copy.tsx";
import { ErrorNotice } from "../../ui/states.tsx";
import { useSubscriptionActions } from "./data/use-subscription-actions.ts";

interface SecretProps {
  readonly id: string;
  /** It is given where the secret was just made. */
  readonly fresh?: string;
}

/** Shows the signing secret where it was just made, else on request. */
export function Secret({ id, fresh }: SecretProps) {
  const { readSecret } = useSubscriptionActions(id);
  const { data: secret = fresh, mutate, error } = useMutation({ mutationFn: readSecret });
  if (secret !== undefined)
    return (
      <div className="takes-line">
        <SecretField label="Secret" value={secret} />
      </div>
    );
  return (
    <Stack gap="xs" align="flex-start">
      <Button variant="default" onClick={() => mutate()}>
        Get the secret
      </Button>
      {error !== null && <ErrorNotice error={error} />}
    </Stack>
  );
}
