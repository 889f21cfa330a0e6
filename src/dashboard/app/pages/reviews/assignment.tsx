import { Select, Stack, Text } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";

import { fieldError } from "../../api/api-error.ts";
import { roleName } from "../../session/roles.ts";
import { useSession } from "../../session/session.tsx";
import { explain } from "../../ui/explain.ts";
import { notify } from "../../ui/notify.ts";
import { useColleagues, useNames, useReviewActions, type Review } from "./data.ts";

/** Shows to whom the review is assigned; choosing somebody assigns it at once. */
export function Assignment({ review }: { readonly review: Review }) {
  const { user: me } = useSession();
  const names = useNames();
  const { assign } = useReviewActions(review.id);
  const { data: colleagues = [] } = useColleagues(review.store_id);
  const { mutate, error, isPending } = useMutation({
    mutationFn: assign,
    onSuccess: (_, id) => notify.done(`Assigned to ${id === me.id ? "you" : names.user(id)}.`),
  });
  const { assigned_user_id: assignee } = review;
  const isGone = assignee !== null && !colleagues.some(({ id }) => id === assignee);
  return (
    <Stack gap="xs">
      <Select
        aria-label="Assigned to"
        placeholder="Nobody"
        searchable
        allowDeselect={false}
        checkIconPosition="right"
        nothingFoundMessage="Nobody of that name sees this store."
        data={colleagues.map(({ id, name, role }) => ({
          value: String(id),
          label: `${name}${id === me.id ? " (you)" : ""} · ${roleName(role)}`,
        }))}
        value={assignee === null || isGone ? null : String(assignee)}
        disabled={isPending}
        error={fieldError(error, "user_id") ?? (error === null ? undefined : explain(error).title)}
        onChange={(value) => value !== null && mutate(Number(value))}
      />
      <Text size="sm" c="dimmed">
        {isGone
          ? `Assigned to ${names.user(assignee)}, who can no longer see it. Choose somebody else.`
          : "Everybody in the list sees this store."}
      </Text>
    </Stack>
  );
}
