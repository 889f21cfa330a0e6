import { notifications } from "@mantine/notifications";

import { explain } from "./explain.ts";

const CLOSE = { "aria-label": "Close" };

/** Says in the corner of the page what was done; screen readers say it, too. */
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
  /** Takes away what was said to somebody who has left. */
  clear(): void {
    notifications.clean();
  },
};
