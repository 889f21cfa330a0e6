import { Button, Group, Stack, Text, Textarea } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";

import { useApi } from "../../session.tsx";
import { fieldError } from "../../ui/explain.ts";
import { FormError } from "../../ui/form.tsx";
import { notify } from "../../ui/notify.ts";
import { StateBadge } from "../../ui/state-badge.tsx";
import { ErrorNotice } from "../../ui/states.tsx";
import { sentence } from "../../ui/words.ts";
import { useShowReview, type Review } from "./data.ts";
import { FLAG_MEANING, movesOf, type FlagMove } from "./flag-moves.ts";

const MAX_CHARS = 1_000;

/** The flag's state with what may be done about it now. */
export function Flag({ review, source }: { readonly review: Review; readonly source: string }) {
  const { flag, removed_at: removedAt } = review;
  const isOpen = movesOf(flag?.status).length > 0;
  return (
    <Stack gap="md">
      {flag !== null && (
        <div>
          <StateBadge state={flag.status} />
          <Text size="sm" mt={6}>
            {FLAG_MEANING[flag.status]}
          </Text>
          {flag.reason !== null && (
            <Text size="sm" c="dimmed" mt={4} className="as-written">
              Reason: {flag.reason}
            </Text>
          )}
        </div>
      )}
      {isOpen && <Moves review={review} />}
      {!isOpen && removedAt === null && <FlagForm review={review} source={source} />}
      {flag === null && removedAt !== null && (
        <Text size="sm" c="dimmed">
          It was not flagged before it was removed.
        </Text>
      )}
    </Stack>
  );
}

function Moves({ review }: { readonly review: Review }) {
  const api = useApi();
  const show = useShowReview();
  const { mutate, error, isPending, variables } = useMutation({
    mutationFn: (status: FlagMove) =>
      api.call("POST", "/account/reviews/:id/flag-status", {
        params: { id: String(review.id) },
        body: { status },
      }),
    onSuccess: (answer) => {
      show(answer);
      notify.done(`The flag is set to “${sentence(answer.flag?.status ?? "")}”.`);
    },
  });
  return (
    <Stack gap="xs">
      <Group gap="xs" component="fieldset" className="bare-fieldset">
        <Text size="sm" fw={500} component="legend" mb={6}>
          What came of it?
        </Text>
        {movesOf(review.flag?.status).map(({ to, action }) => (
          <Button
            key={to}
            variant="default"
            size="xs"
            onClick={() => mutate(to)}
            loading={isPending && variables === to}
            disabled={isPending}
          >
            {action}
          </Button>
        ))}
      </Group>
      {error !== null && <ErrorNotice error={error} />}
      <Text size="xs" c="dimmed">
        Changes are passed on to the account owner.
      </Text>
    </Stack>
  );
}

function FlagForm({ review, source }: { readonly review: Review; readonly source: string }) {
  const api = useApi();
  const show = useShowReview();
  const [reason, setReason] = useState("");
  const { mutate, error, isPending } = useMutation({
    mutationFn: () =>
      api.call("POST", "/account/reviews/:id/flag", {
        params: { id: String(review.id) },
        body: { reason: reason.trim() },
      }),
    onSuccess: (answer) => {
      setReason("");
      show(answer);
      notify.done("The review is flagged.");
    },
  });
  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        mutate();
      }}
    >
      <Stack gap="xs">
        <Textarea
          label={review.flag === null ? "Why should it be checked?" : "Flag it again, because"}
          description={`Such as: not a customer, wrong business, against the rules of ${source}.`}
          autosize
          minRows={2}
          maxRows={8}
          maxLength={MAX_CHARS}
          value={reason}
          error={fieldError(error, "reason")}
          onChange={(event) => setReason(event.currentTarget.value)}
        />
        <FormError error={error} fields={["reason"]} />
        <Group>
          <Button
            type="submit"
            variant="default"
            loading={isPending}
            disabled={reason.trim() === ""}
          >
            Flag review
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
