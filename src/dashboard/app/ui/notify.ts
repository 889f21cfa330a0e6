import { notifications } from "@mantine/notifications";

import { explain } from "./explain.ts";

const CLOSE = { "aria-label": "Close" };

/** A word in the corner about what was done; screen readers say it. */
export const notify = {
  done(message: string): void {
    notifications.show({ message, color: "teal", closeButtonProps: CLOSE });
  },
  failed(error: unknown): void {
    const { title, advice } = explain(error);
    notifications.show({
      title,
      message: advice,
      color: "red",
      autoClose: 10_000,
      closeButtonProps: CLOSE,
    });
  },
  /** Of somebody who has left. */
  clear(): void {
    notifications.clean();
  },
};
