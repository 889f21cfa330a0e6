import { notifications } from "@mantine/notifications";

import { errorMessageOf } from "./error-message.ts";

const CLOSE_BUTTON = { "aria-label": "Close" };

/** Shows notifications in a corner of the page. Screen readers announce them. */
export const notify = {
  done(message: string): void {
    notifications.show({ message, color: "teal", closeButtonProps: CLOSE_BUTTON });
  },
  failed(error: unknown): void {
    const { title, advice } = errorMessageOf(error);
    notifications.show({
      title,
      message: advice,
      color: "red",
      autoClose: 10_000,
      closeButtonProps: CLOSE_BUTTON,
    });
  },
  /** Removes all notifications when a session ends, so that the next user does not see them. */
  clear(): void {
    notifications.clean();
  },
};
