/* SPDX-License-Identifier: Apache-2.0 */
/* tokwattd: the daemon. */
int main(void)
{
    return 0;
}
