import { Text, TextInput } from "@mantine/core";
import { useState } from "react";

import { Confirm } from "../../ui/dialog.tsx";
import { type Account, useActAsOwner } from "./data.ts";

const REASON_CHARS = 500;

interface ActDialogProps {
  readonly account: Account;
  readonly onClose: () => void;
}

/** Dialog that begins an impersonation of the owner of an account. */
export function ActDialog({ account: { id, name }, onClose }: ActDialogProps) {
  const actAsOwner = useActAsOwner();
  const [reason, setReason] = useState("");
  return (
    <Confirm
      opened
      onClose={onClose}
      title={`Act as the owner of ${name}?`}
      action="Act as owner"
      onConfirm={() => actAsOwner(id, reason.trim())}
    >
      <Text size="sm" mb="md">
        You see the reviews of {name} and respond as its owner, for up to 24 hours. Passwords, keys
        and secrets are not accessible. The audit log records both of you.
      </Text>
      <TextInput
        label="Reason"
        description="Optional. Recorded in the audit log."
        maxLength={REASON_CHARS}
        data-autofocus
        value={reason}
        onChange={(event) => setReason(event.currentTarget.value)}
      />
    </Confirm>
  );
}
